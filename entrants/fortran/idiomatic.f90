! Streams through a pipe in idiomatic standard Fortran: execute_command_line starts the child, and parent and child use
! named pipes.
program idiomatic
   use, intrinsic :: iso_fortran_env, only: int32, int64, output_unit
   use stream, only: options_t, block_t, answer_t, read_options, report, fail, factor, low_32
   implicit none

   type(options_t) :: options

   options = read_options()
   if (options%child) then
      call child(options)
   else
      call parent(options)
   end if

contains

   ! Adds the block's two running sums over its words; the last word is padded with zeros.
   pure function add_word_sums(checksum, words) result(sums)
      integer(int64), intent(in) :: checksum
      integer(int32), intent(in) :: words(:)
      integer(int64) :: sums
      integer(int32) :: a, b
      integer :: i

      a = 0
      b = 0
      do i = 1, size(words)
         a = a + words(i)
         b = b + a
      end do
      sums = checksum*factor + ior(shiftl(int(b, int64), 32), iand(int(a, int64), low_32))
   end function add_word_sums

   subroutine child(options)
      type(options_t), intent(in) :: options
      type(block_t) :: block
      type(answer_t) :: answer
      integer(int64) :: length
      integer :: data

      call block%allocate(options%block)
      answer%checksum = merge(0, 1, options%document)
      open (newunit=data, file='/dev/stdin', access='stream', form='unformatted', action='read', status='old')
      write (output_unit, '(a)') 'ready'
      flush (output_unit)
      do
         call read_full(data, block, length)
         if (length == 0) exit
         answer%bytes = answer%bytes + length
         if (options%document) then
            answer%checksum = ieor(answer%checksum, iand(int(iparity(block%bytes(:length)), int64), 255_int64))
         else
            answer%checksum = add_word_sums(answer%checksum, block%words(:(length + 3)/4))
         end if
      end do
      write (output_unit, '(i0,1x,i0)') answer%bytes, answer%checksum
   end subroutine child

   ! Reads until the block is full or the stream ends. If the pipe has fewer bytes, the read statement ends early with
   ! an end-of-file condition. The stream has ended only when a read returns no bytes.
   subroutine read_full(data, block, length)
      integer, intent(in) :: data
      type(block_t), intent(inout) :: block
      integer(int64), intent(out) :: length
      integer(int64) :: start, before, position
      integer :: status

      inquire (data, pos=start)
      position = start
      do
         before = position
         length = position - start
         read (data, iostat=status) block%bytes(length + 1:)
         if (status > 0) call fail('cannot read from the pipe')
         inquire (data, pos=position)
         length = position - start
         if (status == 0 .or. position == before) exit
      end do
      block%bytes(length + 1:min(size(block%bytes, kind=int64), (length + 3)/4*4)) = 0
   end subroutine read_full

   subroutine parent(options)
      type(options_t), intent(in) :: options
      type(block_t) :: block
      type(answer_t) :: answer
      integer(int64) :: start, end, rate, offset, length
      integer :: data, back, status
      character(5) :: ready
      character(:), allocatable :: directory

      directory = new_directory()
      call run('mkfifo '//directory//'/data '//directory//'/back')
      ! If the child fails, its shell writes a line instead, so that the parent doesn't wait forever.
      call execute_command_line('('//program_name()//' --child'//options%line//' || echo failed) <'//directory// &
                                '/data >'//directory//'/back', wait=.false.)
      open (newunit=data, file=directory//'/data', access='stream', form='unformatted', action='write', status='old')
      open (newunit=back, file=directory//'/back', action='read', status='old')
      call run('rm -r '//directory)
      call block%fill(options)
      read (back, '(a)', iostat=status) ready
      if (status /= 0 .or. ready /= 'ready') call fail('the child ended before it was ready')

      call system_clock(start, rate)
      do offset = 0, options%bytes - 1, options%block
         length = min(options%block, options%bytes - offset)
         call block%prepare(options, offset, length)
         write (data, iostat=status) block%bytes(:length)
         if (status /= 0) call fail('cannot write to the pipe')
      end do
      close (data, iostat=status)
      if (status /= 0) call fail('cannot write to the pipe')
      read (back, *, iostat=status) answer%bytes, answer%checksum
      call system_clock(end)

      if (status /= 0) call fail('the child failed')
      call report(answer, (end - start)*(1000000000/rate))
   end subroutine parent

   subroutine run(command)
      character(*), intent(in) :: command
      integer :: status

      call execute_command_line(command, exitstat=status)
      if (status /= 0) call fail(command//' failed')
   end subroutine run

   ! Creates a directory for this process. mkdir fails if the name is in use.
   function new_directory() result(directory)
      character(:), allocatable :: directory
      integer(int64) :: ticks
      character(20) :: number

      call system_clock(ticks)
      write (number, '(i0)') ticks
      directory = '/tmp/pipemark-'//trim(number)
      call run('mkdir -m 700 '//directory)
   end function new_directory

   function program_name() result(name)
      character(:), allocatable :: name
      integer :: length

      call get_command_argument(0, length=length)
      allocate (character(length) :: name)
      call get_command_argument(0, name)
      name = "'"//name//"'"
   end function program_name

end program idiomatic
