! Shared by both programs: the options, the bytes to send, the answer and the result line.
! Each program moves and sums bytes in its own way. See ../README.md.
!
! Fortran has no unsigned numbers, so sums are signed and wrap around (-fwrapv). Words have the machine's byte order,
! which must be little-endian.
module stream
   use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc
   use, intrinsic :: iso_fortran_env, only: compiler_version, error_unit, int8, int32, int64, output_unit
   implicit none
   private
   public :: options_t, block_t, answer_t, read_options, report, fail

   ! Multiplies the checksum before each block's sums are added to it.
   integer(int64), parameter, public :: factor = int(z'9E3779B97F4A7C15', int64)
   integer(int64), parameter, public :: low_32 = int(z'FFFFFFFF', int64)

   type :: options_t
      logical :: child = .false.
      integer(int64) :: bytes = -1
      integer(int64) :: block = 0
      logical :: document = .false.
      integer(int64) :: seed = 0
      integer(int64) :: flip = -1 ! offset of the byte to invert; negative for none
      character(:), allocatable :: line ! all options, as given
   end type options_t

   ! Memory for one block, as bytes and as words.
   type :: block_t
      integer(int32), pointer, contiguous :: words(:) => null()
      integer(int8), pointer, contiguous :: bytes(:) => null()
      integer(int64) :: flipped = 0 ! the byte to restore before the next block
   contains
      procedure :: allocate => block_allocate
      procedure :: fill => block_fill
      procedure :: prepare => block_prepare
   end type block_t

   ! The child's result.
   type :: answer_t
      integer(int64) :: bytes = 0
      integer(int64) :: checksum = 0
      integer(int64) :: capacity = 0 ! in bytes; 0 if unknown
   end type answer_t

contains

   ! Ends the program with status 1, or 2 for wrong usage.
   subroutine fail(message, status)
      character(*), intent(in) :: message
      integer, intent(in), optional :: status

      write (error_unit, '(a)') message
      if (present(status)) stop status, quiet = .true.
      stop 1, quiet = .true.
   end subroutine fail

   function argument(number) result(text)
      integer, intent(in) :: number
      character(:), allocatable :: text
      integer :: length

      call get_command_argument(number, length=length)
      allocate (character(length) :: text)
      call get_command_argument(number, text)
   end function argument

   function read_options() result(options)
      type(options_t) :: options
      character(:), allocatable :: name, value
      integer :: i

      options%line = ''
      i = 1
      do while (i <= command_argument_count())
         name = argument(i)
         i = i + 1
         if (name == '--child') then
            options%child = .true.
            cycle
         end if
         value = argument(i)
         i = i + 1
         select case (name)
         case ('--bytes')
            options%bytes = number(name, value)
         case ('--block')
            options%block = number(name, value)
         case ('--pattern')
            if (value /= 'document' .and. value /= 'position') call fail('--pattern must be position or document', 2)
            options%document = value == 'document'
         case ('--seed')
            options%seed = number(name, value)
         case ('--flip')
            options%flip = number(name, value)
         case default
            call fail(name//' is not known', 2)
         end select
         options%line = options%line//' '//name//' '//value
      end do
      if (options%bytes < 0 .or. options%block < 1) call fail('--bytes and a --block of at least 1 are needed', 2)
   end function read_options

   function number(name, text)
      character(*), intent(in) :: name, text
      integer(int64) :: number
      integer :: status

      number = 0
      status = verify(text, '0123456789')
      if (status == 0) read (text, *, iostat=status) number
      if (status /= 0) call fail(name//' must be a whole number, not "'//text//'"', 2)
   end function number

   subroutine block_allocate(self, size)
      class(block_t), intent(inout) :: self
      integer(int64), intent(in) :: size

      allocate (self%words((size + 3)/4), source=0_int32)
      call c_f_pointer(c_loc(self%words), self%bytes, [size])
   end subroutine block_allocate

   ! Fills the block with the content of block 0.
   subroutine block_fill(self, options)
      class(block_t), intent(inout) :: self
      type(options_t), intent(in) :: options
      integer(int64) :: i, x

      call self%allocate(options%block)
      x = options%seed
      do i = 1, options%block
         x = iand(x*1664525 + 1013904223, low_32)
         if (options%document) then
            self%bytes(i) = to_byte(i - 1)
         else
            self%bytes(i) = to_byte(shiftr(x, 24))
         end if
      end do
   end subroutine block_fill

   ! Changes the content to that of the block that starts at the offset. `length` bytes of the block are sent.
   subroutine block_prepare(self, options, offset, length)
      class(block_t), intent(inout) :: self
      type(options_t), intent(in) :: options
      integer(int64), intent(in) :: offset, length
      integer(int64) :: i

      if (self%flipped > 0) self%bytes(self%flipped) = not(self%bytes(self%flipped))
      self%flipped = 0
      if (.not. options%document) then
         do i = 1, min(8_int64, length)
            self%bytes(i) = to_byte(shiftr(offset/options%block, 8*(i - 1)))
         end do
      end if
      if (options%flip >= offset .and. options%flip < offset + length) then
         self%flipped = options%flip - offset + 1
         self%bytes(self%flipped) = not(self%bytes(self%flipped))
      end if
   end subroutine block_prepare

   ! The lowest eight bits.
   elemental function to_byte(value) result(byte)
      integer(int64), intent(in) :: value
      integer(int8) :: byte

      byte = int(ibits(value, 0, 7) - merge(128, 0, btest(value, 7)), int8)
   end function to_byte

   ! Prints the result line that the contract requires.
   subroutine report(answer, ns)
      type(answer_t), intent(in) :: answer
      integer(int64), intent(in) :: ns
      character(20) :: capacity

      capacity = 'null'
      if (answer%capacity > 0) write (capacity, '(i0)') answer%capacity
      write (output_unit, '(3a,i0,a,i0,5a)') '{"language":"Fortran","runtime":"', compiler_version(), &
         '","bytes":', answer%bytes, ',"ns":', ns, ',"checksum":"', hexadecimal(answer%checksum), '","capacity":', &
         trim(capacity), '}'
   end subroutine report

   function hexadecimal(value) result(text)
      integer(int64), intent(in) :: value
      character(16) :: text
      character(*), parameter :: digits = '0123456789abcdef'
      integer :: i, digit

      do i = 1, 16
         digit = int(ibits(value, 64 - 4*i, 4))
         text(i:i) = digits(digit + 1:digit + 1)
      end do
   end function hexadecimal

end module stream
